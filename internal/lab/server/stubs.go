package server

import "net/http"

const controlPrefix = "/lab/"

func (s *Server) serveControl(*http.Request, []byte) *answer { return nil }
func (s *Server) routesAccess()                              {}
func (s *Server) routesCluster()                             {}
func (s *Server) routesNodes()                               {}
func (s *Server) routesTasks()                               {}
func (s *Server) routesStorage()                             {}
func (s *Server) routesPools()                               {}
func (u *user) addToken(t *token)                            {}
func newPool(id, comment string) *pool {
	return &pool{ID: id, Comment: comment, Guests: map[int]bool{}, Storages: map[string]bool{}}
}
